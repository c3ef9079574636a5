"""Takes times of launches: protocols, isolated processes, campaigns, the store, and the doctor of devices."""
