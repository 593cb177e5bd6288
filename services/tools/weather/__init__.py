"""The weather: read from an Open-Meteo server, worded in Chinese or English, recognised in questions."""
