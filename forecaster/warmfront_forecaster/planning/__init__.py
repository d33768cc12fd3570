"""Pure planning: demand, sizing, decide(observation, now) -> Decision. The operator imports this."""
