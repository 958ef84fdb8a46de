"""What Koordinator reckons, literally: what ours is compared with. Nothing in the product uses it.

defaults      are what holds where nothing is said
laws/         are what its node agent does, as numbers
overcommit/   is what its manager and its predictor reckon
"""
