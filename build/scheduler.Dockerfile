# The QoS-driven scheduler.  From the root of the clone:
#   docker build -f build/scheduler.Dockerfile -t j10ce-qos-scheduler .
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements requirements
COPY src src
# No pip inside: what is installed here is all there will ever be.  Whatever is downloaded has the hash of its pin.
RUN python -m venv --without-pip /opt/j10ce-qos \
    && pip install --no-cache-dir --only-binary :all: --require-hashes --target /opt/build -r requirements/build.txt \
    && pip --python /opt/j10ce-qos/bin/python install --no-cache-dir --only-binary :all: --require-hashes \
       -r requirements/scheduler.txt \
    && PYTHONPATH=/opt/build pip --python /opt/j10ce-qos/bin/python install --no-cache-dir --no-deps \
       --no-build-isolation .

FROM python:3.11-slim-bookworm
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="j10ce-qos-scheduler" \
      org.opencontainers.image.description="Scheduler of j10ce-qos: pods get the share of time that they were promised" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/turtacn/j10ce-qos" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# The base brings a pip of its own; whoever gets in shall not find it.
RUN pip uninstall --yes pip setuptools wheel
# `kubectl exec … -- curl -s http://localhost:10000/` shows the debug page.
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends curl && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/j10ce-qos /opt/j10ce-qos
ENV PATH=/opt/j10ce-qos/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["j10ce-qos-scheduler"]
