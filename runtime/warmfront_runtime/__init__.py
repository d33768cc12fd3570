"""What runs in each pod: the gateway, its warm-up, its admission."""
