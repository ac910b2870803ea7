"""What runs as Ray actors: engines, replicas, pools, the controller."""
