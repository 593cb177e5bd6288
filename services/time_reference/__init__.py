"""Time as people write it: dates, times of day and time zones in English and Chinese text."""
