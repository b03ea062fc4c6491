"""Who gets new models right? Choices by name, by files and by proof, on rows with a known answer."""
