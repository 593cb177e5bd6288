"""The weather: asked of an Open-Meteo server, told in Chinese or English, recognised in questions."""
