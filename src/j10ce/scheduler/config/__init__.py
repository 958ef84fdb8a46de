"""How a scheduler is set up: KubeSchedulerConfiguration, as Kubernetes writes it, and what of it we are made of.

Plain data comes in; profiles of plugins go out, or all that is wrong with it at once.

    sections         is the file
    arguments        is what plugins can be told
    names            is how plugins are called
    registry         is every plugin by name
    points           is which plugins are asked where, after defaults and multiPoint
    contradictions   is arguments that are right one by one, and wrong together
    profiles         makes one profile of its section
    settings         makes profiles of the file, and the rest of it
"""
