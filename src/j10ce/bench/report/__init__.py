"""How a proof is shown.

A proof comes in; sentences, text for a terminal, SVG, HTML and JSON go out.

    words      says in a few sentences what came out
    text       draws it for a terminal, of any width
    picture    draws it as SVG
    page       is one HTML file with the picture, the figures and how they were measured
    files      writes prove.json and prove.html
"""
