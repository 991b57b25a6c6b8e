"""The engines behind `stea_fast.topk`.

An engine finds, in single precision, a few more candidates of every row and column than were asked for;
`exact.py` then computes their scores in double precision, orders them, and searches again where single precision
could not tell who belongs among the best. So all engines give the same result, ties included.
"""
