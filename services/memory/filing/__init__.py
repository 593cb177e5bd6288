"""Files what users say: a model's answer, checked and carried out."""
