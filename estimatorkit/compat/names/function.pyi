from estimatorkit.compat.ops.control.defun import Defun as Defun
