def found_in(text, today):
    return []
