"""Ratings of players by the results of their games.

Elo 1978, The Rating of Chessplayers, Past and Present: the expected score is the logistic function of the difference in
ratings, and a rating changes by `PACE` times the difference between score and expected score.
"""

import math

START = 1000.0
"""Rating of the policy before its first update, which stays."""
PACE = 4.0
"""Largest change of a rating by one game."""


def expected_score(rating: float, other: float) -> float:
    """Returns the expected score of a player against another one, from 0 to 1."""
    return 1.0 / (1.0 + math.pow(10.0, min(max((other - rating) / 400.0, -10.0), 10.0)))


def change(rating: float, other: float, score: float) -> float:
    """Returns the change of a rating by a game with that score: 1 for a win, 0.5 for a draw and 0 for a loss."""
    return PACE * (score - expected_score(rating, other))
