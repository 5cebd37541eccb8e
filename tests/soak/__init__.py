"""Long rehearsals: what must hold over many climates and seeds, and how strategies compare."""
