"""Shadow strategies that spend nothing: the decisions and cost that each would have had beside the live one."""
