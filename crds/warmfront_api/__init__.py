"""The Warmfront API: typed models of its Kubernetes kinds. Pure; knows no cluster."""
