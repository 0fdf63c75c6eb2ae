package orchestrator

type workTx interface {
	codebaseTx
	planTx
	undoTx
}

func wtx(tx Tx) workTx { return tx.(workTx) }
