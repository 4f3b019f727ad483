"""What a run leaves to be read: the plot, the summary, the words on the terminal."""
