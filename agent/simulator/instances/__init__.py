"""What instances of either market share: containers, images, programs, ports and the till."""
