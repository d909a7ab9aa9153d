"""From the engine to an open view: events are gathered, folded, packed for the wire and sent to a widget."""
