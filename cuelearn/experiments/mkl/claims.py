"""What the claims of the chapter are judged by."""
