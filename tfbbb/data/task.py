from typing import Literal

Task = Literal["regression", "classification"]
