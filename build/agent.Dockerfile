# The agent of one node, and the command line to look at it from within.  From the root of the clone:
#   docker build -f build/agent.Dockerfile -t j10ce-qos-agent .
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements/constraints.txt requirements/
COPY src src
# No pip inside: what is installed here is all there will ever be.
RUN python -m venv --without-pip /opt/j10ce-qos \
    && pip --python /opt/j10ce-qos/bin/python install --no-cache-dir --only-binary :all: --no-binary j10ce-qos \
       --constraint requirements/constraints.txt ".[systemd,cli]"

FROM python:3.11-slim-bookworm
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="j10ce-qos-agent" \
      org.opencontainers.image.description="Agent of j10ce-qos, quality of service for Linux workloads" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/turtacn/j10ce-qos" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/j10ce-qos /opt/j10ce-qos
ENV PATH=/opt/j10ce-qos/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# The cgroup tree belongs to root, and so does what is written into it.  deploy/ says which capabilities are left.
USER 0:0
ENTRYPOINT ["j10ce-qos-agent"]
