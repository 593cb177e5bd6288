"""The command `anamnesis`: registers every subcommand."""

from api.cli import (
    access,
    backfill,
    backup,
    chat,
    configuration,
    doctor,
    erase,
    evaluate,
    knowledge,
    mcp,
    model,
    request,
    serve,
    stores,
    transfer,
)
from api.cli.shell import make_shell

app = make_shell()
app.command(name="serve")(serve.serve)
app.command(name="mcp")(mcp.mcp)
app.command(name="worker")(serve.worker)
app.command(name="chat")(chat.chat)
app.command(name="demo")(serve.demo)
app.command(name="migrate")(stores.migrate)
app.command(name="doctor")(doctor.doctor)
app.add_typer(model.app, name="model")
app.command(name="init")(configuration.init)
app.command(name="config")(configuration.config)
app.command(name="api")(request.api)
app.add_typer(request.jobs_app, name="jobs")
app.add_typer(access.keys_app, name="keys")
app.add_typer(stores.encryption_app, name="encryption")
app.add_typer(access.tenants_app, name="tenants")
app.command(name="audit")(erase.audit)
app.command(name="verify-receipt")(erase.verify_receipt)
app.command(name="erase")(erase.erase)
app.command(name="import")(transfer.import_)
app.command(name="export")(transfer.export)
app.command(name="backup")(backup.backup)
app.command(name="restore")(backup.restore)
app.command(name="reindex")(stores.reindex)
app.command(name="eval")(evaluate.evaluate)
app.add_typer(knowledge.app, name="kb")
app.command(name="backfill")(backfill.backfill)

if __name__ == "__main__":
    app()
