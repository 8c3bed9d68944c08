"""Every claim of the study, in the order of the paper; each module states its rules before any result."""

from partwise.studies.attentive_guidance.claims import ablation, behaviour, emergence, groups, inside

CLAIMS = (*behaviour.CLAIMS, *inside.CLAIMS, *groups.CLAIMS, *ablation.CLAIMS, *emergence.CLAIMS)
