"""The style of HTML reports, and when they warn of a busy machine."""

#: Load average above which a report warns.
BUSY_LOAD = 0.7
STYLE = """
body {
  font: 15px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem;
  color: #222;
}
h2 { margin-top: 2.6rem; border-bottom: 1px solid #ccc; } h3 { margin: 1.6rem 0 .4rem; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td {
  padding: .15rem .5rem; text-align: right; border-bottom: 1px solid #e8e8e8; vertical-align: top;
}
th { font-weight: 600; vertical-align: bottom; border-bottom: 1px solid #999; }
th:first-child, td:first-child { text-align: left; }
.paper { background: #f6f1e4; } small { color: #777; }
.found { margin: .6rem 0; } .found li { margin: .1rem 0; }
.warning { background: #fdf0d5; padding: .5rem 1rem; }
svg { font: 12px system-ui, sans-serif; display: block; margin: .8rem 0; }
pre { font-size: 11px; overflow-x: auto; background: #f7f7f7; padding: .6rem; }
"""
