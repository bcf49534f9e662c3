"""Two graphs side by side: `match` pairs their values, `diff` lists what differs."""
