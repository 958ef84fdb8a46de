"""What a person types: `j10ce-qos`. Commands are thin; they talk to the agent's socket and to the API."""
