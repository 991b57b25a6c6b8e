"""The engines of `topk`: each finds candidates in single precision; `search.exact` settles them."""
