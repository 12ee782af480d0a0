FROM tools
