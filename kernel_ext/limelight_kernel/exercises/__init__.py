"""The lessons' exercises: `%check` judges an answer and names the misconception behind a wrong one, `%hint` helps."""

from limelight_kernel.exercises.exercise import Exercise, Verdict
from limelight_kernel.exercises.lessons import EXERCISES, check, hint

__all__ = ["EXERCISES", "Exercise", "Verdict", "check", "hint"]
