"""Staging: a function, its key, its trace cache, its traces, and nothing else (paper section 4.6).

function            `ll.function` and `Function`: begin here; its docstring tells the way of a call
options             what the options of `ll.function` may be
signature           calls of a Python function, bound canonically
input_signature     the types of all arguments, declared once
key, key_parts      the key of a call and its parts; value_keys, weak_identity: how values and objects are keyed
trace_cache         concrete functions by key, with their history and bounds
trace_lock          one thread traces at a time; recursion: a function that calls itself while it is traced
tracer, symbolic    the interpreter that writes a graph, and what traced code holds in place of values
structured_outputs  what a traced function returns
state_creation      variables that a function creates; branch_state: those that a branch makes
graph_function      a graph with the means to run it
concrete_function   a graph function with its key and captures: an entry of the cache
structured_inputs   calling one by parameters, or by the flat names of its tensors
call_gradient       differentiating calls of graph functions
trace_branch        tracing the branches and bodies of control flow
body_batching, body_tangents   graph functions for a batch of examples, and with tangents
deferred            captures that are looked up at each call
init_scope          leaving a trace
run_eagerly         running the Python code instead
bound_methods       staged methods that do not keep their instance alive
explainer           the hook for explanations, which lie above
"""
