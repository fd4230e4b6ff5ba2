"""Design rules, one small file each; folders are concerns. The folder is the registry."""
