"""The contract itself: its rows, its versions, checkers of what each side sends, and streams that keep it."""
