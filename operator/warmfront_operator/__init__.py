"""Runs InferenceServices: reconciles their children, decides their replicas, reports."""
