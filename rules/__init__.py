"""Design rules, one small file each; folders are concerns. The folder is the registry.

A file whose name begins with an underscore is no rule. ``OWNER`` tells this package from any
other that is called ``rules`` too.
"""

OWNER = "mha-configurator"
