"""`kubebeast publish`: a folder with a trained model and its card, and the way to the Hugging Face Hub."""
