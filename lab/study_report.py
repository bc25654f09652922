def html(r, p): return ""
