"""Pure forecasting: series, models, evaluation, peaks, trust."""
