def html(found): return ""
