"""How memory is removed: a target, its closure over everything derived from it, then hiding, deletion and a
receipt."""
