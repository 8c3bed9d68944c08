"""Every claim of the study, with its rule."""

from partwise.studies.long_range_rules.claims import frequency, predictability

CLAIMS = (*frequency.CLAIMS, *predictability.CLAIMS)
