"""What may never be exceeded: committed spend, hard caps, alerts before them, credit, risk."""
