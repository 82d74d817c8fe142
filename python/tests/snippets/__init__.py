"""What test_snippets.py stands on: the blocks of documents, the directories they run in, and what they name."""
