"""Static forms of the views: plain text, tables, and SVG pictures, for places where no widget runs."""
