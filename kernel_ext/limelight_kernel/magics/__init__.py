"""The magics, one a file: `%%stage`, `%graph`, `%trace_cache`, `%tape`, `%devices`, `%explain`, `%steps`."""
