"""Koordinator's dialect in a manager of Kubernetes: its ConfigMap as NodeStrategies, its webhooks as ours.

What its users write comes in; NodeStrategies, Events, admitted and refused objects go out. None of its CRDs has to be
there, and nothing of its own is written.

    follow       keeps what an API server has of one collection, also of one that it does not know
    reconcile    says which NodeStrategies to write and to delete (pure)
    strategies   keeps them as the ConfigMap says, and says what is wrong with it
    admission    applies profiles to pods, and judges pods and the ConfigMap
"""
