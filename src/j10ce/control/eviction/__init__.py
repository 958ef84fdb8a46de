"""Eviction, the last of four stages: reclaim, throttle, freeze, evict.

A Snapshot comes in; caps and freezes of a few victims go out, and the deeds reclaim, evict and kill.

    needs      says what is to be set free, by which trigger, and how badly
    victims    says who would have to go, in which order
    ladder     says how far to go: up while it hurts, down when it does not
    throttle   slows victims down
    eviction   is the controller
"""
