"""One decision after another: which pod is next, which node it gets, and who has to go for it. Pure.

Events and `now` come in; bindings, evictions, nominations and waits go out. Process, simulator, `place` and extender
drive the same code.

    framework   is what plugins are asked and answer: the extension points
    decisions   is what a step decides, for a driver to carry out
"""
