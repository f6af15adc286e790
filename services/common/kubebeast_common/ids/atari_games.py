"""Names of Atari games in environment ids, as ale-py registers them; usable without ale-py."""

_LEGACY = """
    Adventure AirRaid Alien Amidar Assault Asterix Asteroids Atlantis BankHeist BattleZone BeamRider Berzerk Bowling
    Boxing Breakout Carnival Centipede ChopperCommand CrazyClimber Defender DemonAttack DoubleDunk ElevatorAction
    Enduro FishingDerby Freeway Frostbite Gopher Gravitar Hero IceHockey Jamesbond JourneyEscape Kangaroo Krull
    KungFuMaster MontezumaRevenge MsPacman NameThisGame Phoenix Pitfall Pong Pooyan PrivateEye Qbert Riverraid
    RoadRunner Robotank Seaquest Skiing Solaris SpaceInvaders StarGunner Tennis TimePilot Tutankham UpNDown Venture
    VideoPinball WizardOfWor YarsRevenge Zaxxon
"""
_OTHERS = """
    Atlantis2 Backgammon BasicMath Blackjack Casino Combat Crossbow Darkchambers DonkeyKong Earthworld Entombed Et
    FlagCapture Frogger Galaxian Hangman HauntedHouse HumanCannonball Joust Kaboom KeystoneKapers KingKong Klax
    Koolaid LaserGates LostLuggage MarioBros MazeCraze MiniatureGolf MrDo Othello Pacman Pitfall2 SirLancelot
    SpaceWar Superman Surround Tetris TicTacToe3D Trondead Turmoil VideoCheckers VideoChess VideoCube Warlords
    WordZapper
"""

WITH_VERSION_4 = frozenset(_LEGACY.split())
"""Games of gym: Pong-v4, PongNoFrameskip-v4 and their versions 0 are registered in addition to ALE/Pong-v5."""

GAMES = WITH_VERSION_4 | frozenset(_OTHERS.split())
"""All games of ale-py, e.g. ALE/Tetris-v5."""
