"""The command ``rowtime`` in the process of a test."""

from click.testing import CliRunner, Result

from spark_rowtime.cli import main


def rowtime(*arguments: object) -> Result:
    """Runs the command."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def printed(*arguments: object, code: int = 0) -> str:
    """What the command prints, which ends with this exit code."""
    result = rowtime(*arguments)
    assert result.exit_code == code, result.output
    return result.output
